"""Domains made of what other libraries offer. Each adapter imports its library when it is first used."""
