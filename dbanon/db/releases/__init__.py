"""Published relations: creation, guards, replacement and withdrawal."""
