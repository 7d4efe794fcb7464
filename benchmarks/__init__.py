"""What `make benchmark` measures: latency, API writes, throughput, memory, each on a cluster of its own."""
