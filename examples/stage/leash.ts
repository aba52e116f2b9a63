/** Loaded into each process beside its program: ends it when the demo that has started it is gone. */
process.once('disconnect', () => process.exit(1));
// The channel to the demo must not keep a program alive that has ended.
process.channel?.unref();
