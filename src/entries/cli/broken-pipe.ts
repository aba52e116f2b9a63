let ends = true;

/** A pipe without a reader, and a terminal that is gone. */
const NOBODY_READS = ['EPIPE', 'EIO'];

/**
 * Ends the process quietly when the reader of its output leaves, as `head` does. A worker outlives its
 * readers ({@link outliveReaders}).
 */
export function endWithReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!NOBODY_READS.includes(error.code ?? '')) throw error;
      if (ends && stream === process.stdout) process.exit(0);
    });
  }
}

/** From now on the process keeps running when its readers leave. */
export function outliveReaders(): void {
  ends = false;
}
