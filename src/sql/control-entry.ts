/** The entry whose export makes drizzle-kit create the tables of what controls a queue. */
export const CONTROL_ENTRY = 'drizzle-queue/schema/control';
