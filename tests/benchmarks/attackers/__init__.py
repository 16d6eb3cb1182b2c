"""Attacks on naive releases, and on those that dbanon publishes."""
