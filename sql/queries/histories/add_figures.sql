-- Keep what comparing a release with those before found, so that the next one starts from it.
INSERT INTO dbanon.history_figures (release_id, figures)
VALUES (%(release)s, %(figures)s)
