import { createQueue, defineJob, exponentialBackoff, workflowsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

export const queue = createQueue({ workflows: workflowsIn(schema) });

// Far shorter than in earnest, where the default is the better one: one second, doubling up to one hour.
const backoff = exponentialBackoff({ initialMs: 50, maxMs: 200 });
const page = z.object({ documentId: z.uuid(), page: z.int() });

/** Cuts a document into its pages. */
export const splitDocument = defineJob('split-document', {
  payload: z.object({ documentId: z.uuid() }),
  backoff,
});

/** Makes text of the scan of one page. */
export const readPage = defineJob('read-page', { payload: page, maxAttempts: 4, backoff });

/** Counts the words of a page that was read. */
export const countWords = defineJob('count-words', {
  payload: page,
  output: z.object({ page: z.int(), words: z.int() }),
  backoff,
});

/** Says what is in a document, and which of its pages could not be read. */
export const writeReport = defineJob('write-report', {
  payload: z.object({ documentId: z.uuid() }),
  backoff,
});
