"""Published relations: how they are made, guarded, served and withdrawn."""
