/**
 * A document is cut into pages; each page is read, and its words are counted; a report at the end joins all
 * of it. Some pages are illegible, the scanner is busy at times, and one of the two workers is killed in the
 * middle. At the end the numbers add up.
 */
import { and, eq, isNotNull } from 'drizzle-orm';
import { addUp, onStage, until } from '../stage/on-stage.ts';
import { addDocument } from './documents.ts';
import { countWords, queue, readPage } from './jobs.ts';
import { recognise, scanOf } from './scanner.ts';
import { documents, pages, queueResults } from './schema.ts';

const PAGES = Number(process.env.PAGES ?? 500);

await onStage(import.meta.url, async ({ db, start }) => {
  const workers = [start('worker.ts'), start('worker.ts')];
  await Promise.all(workers.map((worker) => worker.message()));

  const { documentId, flowId } = await addDocument(db, 'Annual report', PAGES);
  await until('a third of the pages is read', async () => {
    return (await db.$count(pages, isNotNull(pages.text))) > PAGES / 3;
  });
  await workers.shift()?.kill();
  console.log('A third of the pages is read, and one of two workers is killed.');
  const flow = await queue.workflows.waitForFlow(db, flowId, { timeoutMs: 60_000 });
  await Promise.all(workers.map((worker) => worker.stop()));

  // What should come out, by the same scanner.
  const expected = { words: 0, unread: [] as number[] };
  for (let page = 0; page < PAGES; page++) {
    try {
      expected.words += recognise(scanOf(page), 2).split(' ').length;
    } catch {
      expected.unread.push(page);
    }
  }
  const unread = expected.unread.length;
  const [document] = await db.select().from(documents).where(eq(documents.id, documentId));
  const report = document?.report;
  const ended = (kind: string, state: 'completed' | 'discarded' | 'cancelled') =>
    db.$count(queueResults, and(eq(queueResults.kind, kind), eq(queueResults.state, state)));
  addUp([
    ['Jobs of the flow', 2 * PAGES + 2, flow.total],
    ['… that have not ended', 0, flow.pending],
    ['… that failed or were cancelled', 2 * unread, flow.failed],
    ['Pages, each of them once', PAGES, await db.$count(pages)],
    ['Pages read', PAGES - unread, await ended(readPage.kind, 'completed')],
    ['Pages illegible for good', unread, await ended(readPage.kind, 'discarded')],
    ['… whose words were not counted', unread, await ended(countWords.kind, 'cancelled')],
    ['Pages in the report', PAGES, report?.pages],
    ['Words in the report', expected.words, report?.words],
    ['Pages that it says are unread', expected.unread.join(), report?.unread.map(({ page }) => page).join()],
    ['Jobs in all, none twice', 2 * PAGES + 2, await db.$count(queueResults)],
  ]);
  console.log(`One report of ${PAGES} pages, although ${unread} of them were illegible.`);
});
