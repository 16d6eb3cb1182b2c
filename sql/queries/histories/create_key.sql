-- Make a secret key, which never leaves the server, in the two forms in which HMAC uses it (RFC 2104).
INSERT INTO dbanon.history_key (inner_key, outer_key)
SELECT decode(string_agg(lpad(to_hex(p.byte # 54), 2, '0'), '' ORDER BY p.place), 'hex'),
       decode(string_agg(lpad(to_hex(p.byte # 92), 2, '0'), '' ORDER BY p.place), 'hex')
  FROM (SELECT i.place, CASE WHEN i.place < 32 THEN get_byte(k.bytes, i.place) ELSE 0 END AS byte
          FROM (SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                              || uuid_send(gen_random_uuid()))) AS k (bytes)
         CROSS JOIN generate_series(0, 63) AS i (place)) AS p
RETURNING key_id
