-- The number of a class: the keyed hash of what is published of it.
('x' || encode(substr(sha256(k.outer_key || sha256(k.inner_key || convert_to(
    {columns} || ({published})::text, 'UTF8'))), 1, 8), 'hex'))::bit(64)::bigint
