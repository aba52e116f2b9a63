/**
 * Loaded into each worker process beside `worker.ts`: ends it when the demo that has started it is gone. Only a demo
 * needs this: a worker in production outlives whoever started it, but `kill -9` of a demo should leave nothing behind.
 */
process.once('disconnect', () => process.exit(1));
// The channel to the demo must not keep a worker alive that has stopped.
process.channel?.unref();
