/** The entry whose export makes drizzle-kit create the tables of schedules, limits and keys. */
export const CONTROL_ENTRY = 'drizzle-queue/schema/control';
