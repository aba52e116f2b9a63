/** A process that makes images smaller, and removes what nobody wants, until SIGINT or SIGTERM. */
import { and, eq } from 'drizzle-orm';
import { createWorker, handlersFor, NonRetryableError, snooze } from 'drizzle-queue';
import sharp from 'sharp';
import { connect } from './database.ts';
import { makeSizes, queue, removeFiles } from './jobs.ts';
import type { Manifest } from './manifest.ts';
import { images } from './schema.ts';
import { openStorage } from './storage.ts';

const WIDTHS = [160, 320, 640, 1280, 1920];

const db = connect();
const { handle } = handlersFor<typeof db>();
const storage = openStorage();

const sizes = handle(makeSizes, async ({ payload: { imageId }, job, signal, db, complete }) => {
  const original = await storage.get(`${imageId}/original`, signal);
  const { autoOrient } = await sharp(original)
    .metadata()
    .catch((error: Error) => {
      throw new NonRetryableError(`Not an image: ${error.message}`);
    });

  const variants: Manifest['variants'] = [];
  for (const wanted of WIDTHS) {
    const { data, info } = await sharp(original)
      .autoOrient()
      .resize({ width: wanted, withoutEnlargement: true })
      .webp()
      .toBuffer({ resolveWithObject: true });
    // sharp takes no signal, so it is asked between two sizes.
    signal.throwIfAborted();
    // The same key in every attempt: what a killed one has left is overwritten.
    const key = `${imageId}/${wanted}.webp`;
    await storage.put(key, data, signal);
    variants.push({ key, width: info.width, height: info.height, bytes: info.size });
    job.progress({ done: variants.length, of: WIDTHS.length });
  }

  // Last: whoever finds it finds all that it names.
  const manifest = { width: autoOrient.width, height: autoOrient.height, variants };
  await storage.put(`${imageId}/manifest.json`, JSON.stringify(manifest), signal);

  await db.transaction(async (tx) => {
    const ready = await tx
      .update(images)
      .set({ state: 'ready', manifest })
      .where(and(eq(images.id, imageId), eq(images.state, 'processing')))
      .returning({ id: images.id });
    // The request to cancel is on its way: the user has committed it before this.
    if (ready.length === 0) throw new Error('The upload was cancelled meanwhile');
    await complete(tx, manifest);
  });
});

const removal = handle(removeFiles, async ({ payload: { imageId, jobId }, signal, db }) => {
  const job = await queue.find(db, makeSizes, jobId);
  // Its handler may not have heard yet, or its process may be dead and nobody knows: it could still write.
  if (job !== undefined && !('finishedAt' in job)) return snooze(500);
  for (const key of await storage.list(`${imageId}/`)) {
    signal.throwIfAborted();
    await storage.remove(key);
  }
});

const worker = createWorker(db, {
  queue,
  handlers: [sizes, removal],
  // sharp uses the cores; two jobs keep them busy.
  queues: { images: { concurrency: 2 }, cleanup: { concurrency: 2 } },
});
await worker.run();
await db.$client.end({ timeout: 5 });
