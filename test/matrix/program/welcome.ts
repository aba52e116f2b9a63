import { defineJob, unvalidated } from 'drizzle-queue';

/** Enqueued on the edge, done in Node.js. */
export const welcome = defineJob('welcome', { queue: 'edge', payload: unvalidated<{ user: number }>() });
