"""Makes the Grafana dashboards: `python -m dashboards.grafana` writes them beside this file.

They are made for Grafana 11.6, from the names in `footprint_observe.semconv`, and committed; a test makes
them again and compares.
"""
