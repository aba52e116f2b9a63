let ends = false;

/** A pipe without a reader, and a terminal that is gone. */
const NOBODY_READS = ['EPIPE', 'EIO'];

/**
 * Lets the process go on when the reader of its output leaves, as `head` does: what it was asked to do is
 * done to the end, and its exit code tells how. A command that only prints ends ({@link endWithReaders}).
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!NOBODY_READS.includes(error.code ?? '')) throw error;
      if (ends && stream === process.stdout) process.exit(0);
    });
  }
}

/** From now on the process ends quietly when the reader of its output leaves. */
export function endWithReaders(): void {
  ends = true;
}
