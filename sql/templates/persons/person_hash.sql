-- The keyed hash by which a person is remembered.
encode(substr(sha256(k.outer_key || sha256(k.inner_key || convert_to(
    json_build_array({person})::text, 'UTF8'))), 1, 16), 'hex')::uuid
