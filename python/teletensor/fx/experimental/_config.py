"""Settings of fx: assign to the module's variables."""

# Generated code records a range for the graph and for each call of a node in profiles, and the metadata of the nodes is
# registered in fx.traceback under the name of the graph's file.
enrich_profiler_metadata = False
