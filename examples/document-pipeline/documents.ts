/** What the web app does. */
import { eq } from 'drizzle-orm';
import type { Database } from './database.ts';
import { countWords, queue, readPage, splitDocument, writeReport } from './jobs.ts';
import { documents } from './schema.ts';

/** Stores a document and enqueues the work on it: both, or neither. Returns the ids of both. */
export async function addDocument(
  db: Database,
  title: string,
  pageCount: number,
): Promise<{ documentId: string; flowId: number }> {
  return await db.transaction(async (tx) => {
    const [document] = await tx.insert(documents).values({ title, pageCount }).returning();
    if (document === undefined) throw new Error('no document');
    const documentId = document.id;

    const { id: flowId } = await queue.workflows.enqueueFlow(tx, (flow) => {
      const split = flow.add(splitDocument, { documentId });
      const counts = Array.from({ length: pageCount }, (_, page) => {
        const read = flow.add(readPage, { documentId, page }, { after: [split] });
        // A page that cannot be read has no words to count: this job is then cancelled, not run.
        return flow.add(countWords, { documentId, page }, { after: [read] });
      });
      // The report is written all the same, and says so.
      flow.add(writeReport, { documentId }, { after: counts, onFailure: 'run' });
    });

    await tx.update(documents).set({ flowId }).where(eq(documents.id, documentId));
    return { documentId, flowId };
  });
}
