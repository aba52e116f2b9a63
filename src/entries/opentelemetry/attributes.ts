/** The attributes and their values: OpenTelemetry's conventions for messaging, and names of our own. */
export const SYSTEM = { 'messaging.system': 'drizzle_queue' } as const;
export const OPERATION = 'messaging.operation.name';
export const OPERATION_TYPE = 'messaging.operation.type';
export const DESTINATION = 'messaging.destination.name';
export const MESSAGE_ID = 'messaging.message.id';
export const BATCH_COUNT = 'messaging.batch.message_count';
export const CLIENT_ID = 'messaging.client.id';
export const ERROR_TYPE = 'error.type';
export const KIND = 'drizzle_queue.job.kind';
export const ATTEMPT = 'drizzle_queue.job.attempt';
export const MAX_ATTEMPTS = 'drizzle_queue.job.max_attempts';
export const WAIT_MS = 'drizzle_queue.job.wait_ms';
export const OUTCOME = 'drizzle_queue.job.outcome';
export const STEP = 'drizzle_queue.step.name';
export const STEP_KIND = 'drizzle_queue.step.kind';
export const STEP_ATTEMPT = 'drizzle_queue.step.attempt';
export const STEP_OUTCOME = 'drizzle_queue.step.outcome';
export const DUPLICATES = 'drizzle_queue.duplicates';
export const BATCH_FAILED = 'drizzle_queue.batch.failed';
export const STATE = 'drizzle_queue.job.state';
export const VITAL = 'drizzle_queue.vital.code';

/** What the tracer and the meter are called. */
export const SCOPE = 'drizzle-queue';
