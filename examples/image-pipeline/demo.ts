/**
 * Images are uploaded, and made into several sizes. A user cancels one before it begins, one in the middle, and one whose worker was
 * killed a moment ago. The storage refuses a file at first, and one upload is no image. At the end the storage holds what the
 * manifests name, and nothing of what was cancelled.
 */
import { createHash } from 'node:crypto';
import { eq } from 'drizzle-orm';
import sharp from 'sharp';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { openObjectStorage } from './demo/object-storage.ts';
import { cancelUpload, upload, viewImage } from './images.ts';
import { makeSizes, queue } from './jobs.ts';
import { type Manifest, manifestSchema } from './manifest.ts';
import { images, queueJobs, queueResults } from './schema.ts';
import { openStorage } from './storage.ts';

/** Keys whose next PUT is refused. */
const refused = new Set<string>();
/** Whether the third size of an image gets no answer. */
let hangs = false;

await onStage(import.meta.url, async ({ db, start }) => {
  const server = await openObjectStorage((key) =>
    hangs && key.endsWith('/640.webp') ? 'hang' : refused.delete(key) ? 'refuse' : 'take',
  );
  const storage = openStorage(server.url);
  const add = (name: string, data: Uint8Array) => upload(db, storage, name, data);

  const landscape = await add('landscape', await picture(2_400, 1_200));
  // A phone held upright: the camera has stored it lying on its side.
  const portrait = await add('portrait', await picture(1_600, 900, 6));
  const small = await add('small', await picture(300, 300));
  const unlucky = await add('unlucky', await picture(800, 600));
  refused.add(`${unlucky}/320.webp`);
  const broken = await add('broken', new TextEncoder().encode('This is no image.'));
  const early = await add('early', await picture(800, 600));
  await cancelUpload(db, early);

  const env = { STORAGE_URL: server.url };
  const first = start('worker.ts', env);
  const good = [landscape, portrait, small, unlucky];
  const waited = await Promise.all(
    good.map(async (id) => queue.waitFor(db, makeSizes, await jobOf(db, id), { timeoutMs: 60_000 })),
  );
  console.log(`${good.length} images are ready. Another one stops in the middle, and its user cancels it.`);

  const middle = await addAndStop('middle');
  const cancelled = await cancelUpload(db, middle);
  // Within a second its handler's signal is aborted, and with it the request to the storage.
  await queue.waitFor(db, makeSizes, await jobOf(db, middle), { timeoutMs: 60_000 });

  const orphan = await addAndStop('orphan');
  await first.kill();
  console.log('The next one stops in the middle, its worker is killed, and then its user cancels it.');
  const cancelledLate = await cancelUpload(db, orphan);
  hangs = false;
  const second = start('worker.ts', env);
  await until('all jobs end', async () => (await db.$count(queueJobs)) === 0);
  await second.stop();

  const tooLate = await cancelUpload(db, landscape);
  const views = await Promise.all(good.map((id) => viewImage(db, id)));
  const manifests = views.flatMap((view) => (view?.state === 'ready' ? [view.manifest] : []));
  const outputs = waited.flatMap((record) => (record.state === 'completed' ? [record.output] : []));
  const stored = good.map((id) => JSON.parse(String(server.objects.get(`${id}/manifest.json`))));
  const named = manifests.flatMap(({ variants }) => variants.map(({ key }) => key));
  const expected = [...good, broken].map((id) => `${id}/original`);
  expected.push(...good.map((id) => `${id}/manifest.json`), ...named);
  const measured = await Promise.all(named.map(async (key) => sizeOf(server.objects.get(key))));
  const widths = (at: number) => manifests[at]?.variants.map(({ width }) => width).join();
  const results = await db.select().from(queueResults);
  const failed = await viewImage(db, broken);
  const numbers: Parameters<typeof addUp>[0] = [
    ['Images uploaded', 8, await db.$count(images)],
    ['… that are ready', good.length, manifests.length],
    ['Widths of the landscape', '160,320,640,1280,1920', widths(0)],
    ['Widths of the portrait, which stands upright', '160,320,640,900,900', widths(1)],
    ['Widths of the small one, which does not grow', '160,300,300,300,300', widths(2)],
    [
      'Files as large as the manifests say',
      manifests
        .flatMap(({ variants }) => variants.map(({ width, height }) => `${width}x${height}`))
        .join(' '),
      measured.join(' '),
    ],
    ['Manifests in the storage as in the database', json(manifests), json(stored)],
    ['… and as the jobs returned them', json(manifests), json(outputs)],
    ['Files in the storage', expected.sort().join(' '), [...server.objects.keys()].sort().join(' ')],
    [
      'Attempts that the storage has failed',
      1,
      results.filter(({ errors }) => errors.some(({ message }) => message.includes('503'))).length,
    ],
    ['The upload that is no image', 'failed', failed?.state],
    ['Uploads cancelled, and one too late', 'true true false', [cancelled, cancelledLate, tooLate].join(' ')],
    ['Jobs that ended as cancelled', 3, results.filter(({ state }) => state === 'cancelled').length],
  ];
  server.close();
  addUp(numbers.map(([what, wanted, found]) => [what, shortened(wanted), shortened(found)]));
  console.log('The storage holds what the manifests name, and nothing of what was cancelled.');

  /** Uploads an image whose third size gets no answer from the storage; returns when two are done. */
  async function addAndStop(name: string): Promise<string> {
    hangs = true;
    const id = await add(name, await picture(1_000, 1_000));
    await until(`two sizes of ${name} are done`, async () => {
      const view = await viewImage(db, id);
      if (view?.state !== 'processing') throw new Error(`${name} is ${view?.state}`);
      return view.done === 2;
    });
    return id;
  }
});

/** An image with this many pixels, as a camera stores it; an orientation of 6 means that it was held upright. */
async function picture(width: number, height: number, orientation = 1): Promise<Buffer> {
  const background = { r: 200, g: 120, b: 40 };
  return await sharp({ create: { width, height, channels: 3, background } })
    .withMetadata({ orientation })
    .jpeg()
    .toBuffer();
}

async function jobOf(db: Stage['db'], id: string): Promise<number> {
  const [image] = await db.select({ jobId: images.jobId }).from(images).where(eq(images.id, id));
  return image?.jobId ?? 0;
}

async function sizeOf(file: Buffer | undefined): Promise<string> {
  const { width, height } = await sharp(file).metadata();
  return `${width}x${height}`;
}

/** As JSON, whatever the order of its properties: PostgreSQL has one of its own. */
function json(manifests: readonly Manifest[]): string {
  return JSON.stringify(manifests.map((manifest) => manifestSchema.parse(manifest)));
}

/** The ids and keys are long: where they agree, their number says enough. */
function shortened(value: unknown): unknown {
  return typeof value === 'string' && value.length > 60
    ? `${value.length} characters, ${hash(value)}`
    : value;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
