/**
 * What keeps others of its kind out while a BullMQ job is live: the id of a deduplication without a `ttl`, or
 * an id that the app has chosen. BullMQ's own ids are numbers, which it refuses from an app.
 */
export function bullmqKey(id: string, deduplicationId: string | undefined): string | undefined {
  return deduplicationId ?? (/^\d+$/.test(id) ? undefined : id);
}

/** Why a BullMQ job cannot be carried over. */
export function bullmqUnfit(job: {
  readonly hasChildren: boolean;
  readonly hasParent: boolean;
  readonly isScheduled: boolean;
  /** Of a deduplication with `keepLastIfActive`: what came while it ran. It is in no list yet. */
  readonly hasNext: boolean;
}): string | undefined {
  if (job.hasChildren) return 'It waits for its children in a flow';
  if (job.hasParent) return 'Its parent in a flow waits for it';
  if (job.hasNext) return 'Another job is added when it has ended (keepLastIfActive)';
  return job.isScheduled ? 'A job scheduler makes these: declare a schedule for them' : undefined;
}
