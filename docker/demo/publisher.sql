-- Run once, when the data volume is new: an ordinary role, and a database of its own to publish in.
\getenv password PUBLISHER_PASSWORD
CREATE ROLE publisher LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE ROLE analysts NOLOGIN;
CREATE DATABASE clinic OWNER publisher;
-- Who may connect is said by name; everybody may by default.
REVOKE ALL ON DATABASE clinic FROM PUBLIC;
GRANT CONNECT ON DATABASE clinic TO analysts;
