-- What stands for a person in all relations of a series: another keyed hash than the remembered one.
encode(substr(sha256(
    (SELECT k.outer_key FROM dbanon.history_key AS k WHERE k.key_id = {key})
    || sha256((SELECT k.inner_key FROM dbanon.history_key AS k WHERE k.key_id = {key})
              || convert_to('pseudonym' || json_build_array({person})::text, 'UTF8'))), 1, 16), 'hex')::uuid
