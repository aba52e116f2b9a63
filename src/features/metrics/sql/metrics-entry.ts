/** The entry whose export makes drizzle-kit create the table of metrics. */
export const METRICS_ENTRY = 'drizzle-queue/schema/metrics';
