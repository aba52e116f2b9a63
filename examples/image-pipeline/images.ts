/** What the web app does with images. */
import { randomUUID } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import type { Database } from './database.ts';
import { makeSizes, progressSchema, queue, removeFiles } from './jobs.ts';
import type { Manifest } from './manifest.ts';
import { images } from './schema.ts';
import type { Storage } from './storage.ts';

/** Stores an upload; its job commits with its row. Returns the image's id. */
export async function upload(
  db: Database,
  storage: Storage,
  name: string,
  data: Uint8Array,
): Promise<string> {
  const id = randomUUID();
  const key = `${id}/original`;
  // Before the transaction: a worker may have the job a millisecond after the commit. Should this process die in between, the object
  // is left over: in earnest, keep uploads where a rule of the storage deletes what is old, and have the job move them.
  await storage.put(key, data);
  try {
    await db.transaction(async (tx) => {
      const { id: jobId } = await queue.enqueue(tx, makeSizes, { imageId: id });
      await tx.insert(images).values({ id, name, jobId });
    });
  } catch (error) {
    // What counts for the caller is why the upload failed.
    await storage.remove(key).catch(() => undefined);
    throw error;
  }
  return id;
}

/** What a user sees of an image. */
export type ImageView =
  | { readonly state: 'processing'; readonly done: number; readonly of: number }
  | { readonly state: 'ready'; readonly manifest: Manifest }
  | { readonly state: 'failed'; readonly reason: string }
  | { readonly state: 'cancelled' };

export async function viewImage(db: Database, id: string): Promise<ImageView | undefined> {
  const [image] = await db.select().from(images).where(eq(images.id, id));
  if (image === undefined) return undefined;
  if (image.manifest !== null) return { state: 'ready', manifest: image.manifest };
  if (image.state === 'cancelled') return { state: 'cancelled' };
  const job = await queue.find(db, makeSizes, image.jobId);
  if (job === undefined || job.state === 'discarded') {
    return { state: 'failed', reason: job?.errors.at(-1)?.message ?? 'It was too long ago' };
  }
  const progress = progressSchema.safeParse('progress' in job ? job.progress : undefined);
  return { state: 'processing', ...(progress.data ?? { done: 0, of: 1 }) };
}

/** Ends what is being made of an image, and has its files removed. Returns false when it is too late for that. */
export async function cancelUpload(db: Database, id: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [image] = await tx
      .update(images)
      .set({ state: 'cancelled' })
      .where(and(eq(images.id, id), eq(images.state, 'processing')))
      .returning({ jobId: images.jobId });
    if (image === undefined) return false;
    // A waiting job ends here; the handler of a running one is told by its signal.
    const ended = await queue.cancel(tx, image.jobId, 'The user cancelled the upload');
    // Somebody holds its row, in an SQL console maybe: nothing of this happens, and the user may try again.
    if (!ended.cancelled && ended.reason === 'locked') throw new Error('The job is locked');
    await queue.enqueue(tx, removeFiles, { imageId: id, jobId: image.jobId });
    return true;
  });
}
