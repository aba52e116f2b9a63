/**
 * The errors of drizzle-queue. Each message says what happened, to which job or option, and what to do about
 * it. Database errors are passed on unwrapped, except for the two at the end, which name the command to run,
 * and for that of a worker's start which cannot reach its database.
 */

/** The base of all errors that drizzle-queue throws about jobs; `instanceof QueueError` matches them all. */
export class QueueError extends Error {
  override name = 'QueueError';
  /** @internal Identifies the class across copies of this package. */
  static readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.QueueError');

  /**
   * True also for an error of another copy of this package: a process that imports its ES modules and
   * requires its CommonJS files has two copies, with different classes.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore-start lint/complexity/noThisInStatic: `this` is the class that extends this one.
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    // A subclass of the app inherits a brand, but does not own one, so it must not match every branded error.
    return Object.hasOwn(this, 'brand') && isBranded(value, this.brand);
    // biome-ignore-end lint/complexity/noThisInStatic: as above
  }
}

function isBranded(value: unknown, brand: symbol): boolean {
  let at = value;
  while (typeof at === 'object' && at !== null) {
    if (Object(at.constructor).brand === brand) return true;
    at = Object.getPrototypeOf(at);
  }
  return false;
}

/** One complaint of a schema about a value. */
export interface ValidationIssue {
  readonly message: string;
  /** The path inside the value, such as `lines[2].sku`; empty for the value itself. */
  readonly path: string;
}

function describeIssues(issues: readonly ValidationIssue[]): string {
  return issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
}

/**
 * The definition's schema refuses the payload, or Postgres cannot store it as jsonb. `enqueue` throws it
 * before sending anything, so the transaction stays usable. In a worker it fails the attempt.
 */
export class InvalidPayloadError extends QueueError {
  override name = 'InvalidPayloadError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.InvalidPayloadError');
  constructor(
    readonly kind: string,
    readonly issues: readonly ValidationIssue[],
  ) {
    super(`The payload of '${kind}' is invalid: ${describeIssues(issues)}`);
  }
}

/** The `output` schema refuses what the handler returned, or jsonb cannot hold it. The attempt fails. */
export class InvalidOutputError extends QueueError {
  override name = 'InvalidOutputError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.InvalidOutputError');
  constructor(
    readonly kind: string,
    readonly issues: readonly ValidationIssue[],
  ) {
    super(`The output of '${kind}' is invalid: ${describeIssues(issues)}`);
  }
}

/** A value that is not a job definition, or two handlers for one kind. */
export class UnknownKindError extends QueueError {
  override name = 'UnknownKindError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.UnknownKindError');
}

/** A handler exceeded its `timeoutMs`. Its signal is aborted with this error, and the attempt fails. */
export class JobTimeoutError extends QueueError {
  override name = 'JobTimeoutError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobTimeoutError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    readonly timeoutMs: number,
  ) {
    super(`Job ${jobId} ('${kind}') took longer than its timeoutMs of ${timeoutMs} ms`);
  }
}

/**
 * This worker no longer holds the job: it was declared gone and another worker claimed the job, or the
 * attempt is already settled. `complete(tx)` throws it so that the handler's transaction rolls back. The
 * handler's signal is aborted with it.
 */
export class LeaseLostError extends QueueError {
  override name = 'LeaseLostError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.LeaseLostError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    why = 'another worker has claimed it, or it is already settled',
  ) {
    super(`Job ${jobId} ('${kind}') is no longer held by this worker: ${why}`);
  }
}

/**
 * The reason of a handler's signal after `queue.cancel`. If the handler then throws, its job ends as
 * cancelled; if it completes anyway, the job is completed.
 */
export class JobCancelledError extends QueueError {
  override name = 'JobCancelledError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobCancelledError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    /** The reason given to `queue.cancel`. */
    readonly reason: string,
  ) {
    super(`Job ${jobId} ('${kind}') was asked to cancel: ${reason}`);
  }
}

/** Throw it in a handler to discard the job, attempts left or not; the job's errors keep its `cause`. */
export class NonRetryableError extends QueueError {
  override name = 'NonRetryableError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.NonRetryableError');
}

/**
 * A job is older than the `deadlineMs` of its definition. The signal of its handler is aborted with this
 * error, and the job is discarded.
 */
export class JobDeadlineError extends NonRetryableError {
  override name = 'JobDeadlineError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobDeadlineError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    readonly deadlineMs: number,
  ) {
    super(`Job ${jobId} ('${kind}') did not end within its deadlineMs of ${deadlineMs} ms`);
  }
}

/**
 * Throw it in a batch handler to fail some of its jobs, each with its own error; the others are completed,
 * without an output.
 *
 * @throws TypeError unless it names a job
 */
export class BatchError extends QueueError {
  override name = 'BatchError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.BatchError');
  /** The errors of the jobs that have failed, by the jobs' ids. */
  readonly failures: ReadonlyMap<number, unknown>;

  constructor(failures: ReadonlyMap<number, unknown>, options?: ErrorOptions) {
    if (!(failures instanceof Map) || failures.size === 0) {
      throw new TypeError('BatchError takes a Map of at least one error by the id of its job (job.id)');
    }
    const { size } = failures;
    super(
      `${size} job${size === 1 ? '' : 's'} of a batch failed: ${[...failures.keys()].join(', ')}`,
      options,
    );
    this.failures = new Map(failures);
  }
}

/** The job's last worker died before the attempt ended, and no attempt is left: the job is discarded. */
export class WorkerLostError extends QueueError {
  override name = 'WorkerLostError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.WorkerLostError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    readonly maxAttempts: number,
  ) {
    super(
      `Job ${jobId} ('${kind}') was claimed ${maxAttempts} times (its maxAttempts), ` +
        'and the last worker that held it died or lost its connection ' +
        'before it could say how the attempt ended',
    );
  }
}

/** The queue's tables, or columns of them, do not exist: the migrations have not run. */
export class MissingMigrationError extends QueueError {
  override name = 'MissingMigrationError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.MissingMigrationError');
  /** @param entries what the app's schema must export beside the tables of the queue itself */
  constructor(what: string, options?: ErrorOptions, ...entries: readonly (string | undefined)[]) {
    const lines = ['drizzle-queue/schema', ...entries.filter(Boolean)];
    super(
      `${what}. Run \`npx drizzle-kit generate && npx drizzle-kit migrate\` ` +
        `(your Drizzle schema must contain \`export * from '${lines.join("'` and `export * from '")}'\`)`,
      options,
    );
  }
}

/** The server is older than PostgreSQL 14. */
export class UnsupportedPostgresError extends QueueError {
  override name = 'UnsupportedPostgresError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for(
    'drizzle-queue.UnsupportedPostgresError',
  );
  constructor(readonly serverVersion: string) {
    super(`drizzle-queue needs PostgreSQL 14 or newer; this server is ${serverVersion}`);
  }
}
