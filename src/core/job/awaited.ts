/**
 * The key of a job's metadata that asks for an end notice: whatever of this library ends the job notifies
 * those who wait for it. In the metadata, and not in a column: no other job stores a byte of it, and it
 * survives a redrive.
 */
export const AWAITED = 'drizzle_queue.awaited';

export function isAwaited(metadata: Readonly<Record<string, unknown>>): boolean {
  return metadata[AWAITED] === true;
}

/** Metadata as they are stored, an object in JSON, with that wish. */
export function withAwaited(metadata: string): string {
  const wish = `{"${AWAITED}":true`;
  return metadata === '{}' ? `${wish}}` : `${wish},${metadata.slice(1)}`;
}
