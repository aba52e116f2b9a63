/** A process that works on documents, until SIGINT or SIGTERM. */
import { and, eq } from 'drizzle-orm';
import { createWorker, handlersFor } from 'drizzle-queue';
import { connect } from './database.ts';
import { countWords, queue, readPage, splitDocument, writeReport } from './jobs.ts';
import { recognise, scanOf } from './scanner.ts';
import { documents, pages } from './schema.ts';

const db = connect();
const { handle } = handlersFor<typeof db, typeof queue>();
const isPage = ({ documentId, page }: { documentId: string; page: number }) =>
  and(eq(pages.documentId, documentId), eq(pages.page, page));

const splitting = handle(splitDocument, async ({ payload: { documentId }, complete }) => {
  await db.transaction(async (tx) => {
    const [document] = await tx.select().from(documents).where(eq(documents.id, documentId));
    if (document === undefined) throw new Error(`There is no document ${documentId}`);
    const all = Array.from({ length: document.pageCount }, (_, page) => ({
      documentId,
      page,
      scan: scanOf(page),
    }));
    await tx.insert(pages).values(all);
    // The pages exist once: they commit with the end of this job.
    await complete(tx);
  });
});

const reading = handle(readPage, async ({ payload, job }) => {
  const [found] = await db.select().from(pages).where(isPage(payload));
  if (found === undefined) throw new Error(`There is no page ${payload.page}`);
  // May happen twice: a second time writes the same.
  await db
    .update(pages)
    .set({ text: recognise(found.scan, job.attempt) })
    .where(isPage(payload));
});

const counting = handle(countWords, async ({ payload }) => {
  const [found] = await db.select().from(pages).where(isPage(payload));
  return { page: payload.page, words: found?.text?.split(' ').length ?? 0 };
});

const reporting = handle(writeReport, async ({ payload: { documentId }, step, complete }) => {
  // How each job before this one has ended, in the order in which they were added: the first is page 0.
  const counts = await step.parents(countWords);
  const report = {
    pages: counts.length,
    words: counts.reduce((sum, count) => sum + (count.state === 'completed' ? count.output.words : 0), 0),
    unread: counts.flatMap((count, page) =>
      count.state === 'completed' ? [] : [{ page, reason: count.reason }],
    ),
  };
  await db.transaction(async (tx) => {
    await tx.update(documents).set({ report }).where(eq(documents.id, documentId));
    await complete(tx);
  });
});

const worker = createWorker(db, {
  queue,
  handlers: [splitting, reading, counting, reporting],
  concurrency: 20,
  log: false,
});
worker.on('started', () => process.send?.('ready'));
await worker.run();
await db.$client.end({ timeout: 5 });
