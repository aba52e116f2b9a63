/**
 * The errors of drizzle-queue. Every message says what happened, to which job or option, and what to do about it.
 * Errors of the database are passed on as they are; the exceptions are the two at the end, which say which command to run.
 */

/** The base of every error that drizzle-queue throws about jobs, so that `error instanceof QueueError` finds them all. */
export class QueueError extends Error {
  override name = 'QueueError';
  /** @internal What every copy of this package knows the class by. */
  static readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.QueueError');

  /**
   * True also for an error of another copy of this package. A process can have two, its ES modules by `import` and its CommonJS
   * files by `require`, and a class of one is none of the other.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore-start lint/complexity/noThisInStatic: each class that extends this one is asked about itself.
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    // A class of the app that extends one of these inherits its brand, but not everything with that brand is of that class.
    return Object.hasOwn(this, 'brand') && isBranded(value, this.brand);
    // biome-ignore-end lint/complexity/noThisInStatic: as above
  }
}

/** Whether the value's class, or one that it extends, has the brand. */
function isBranded(value: unknown, brand: symbol): boolean {
  let at = value;
  while (typeof at === 'object' && at !== null) {
    if (Object(at.constructor).brand === brand) return true;
    at = Object.getPrototypeOf(at);
  }
  return false;
}

/** What a schema had to say about a value: one line per complaint, with the path inside the value. */
export interface ValidationIssue {
  readonly message: string;
  /** Where in the value, such as `lines[2].sku`; empty for the value itself. */
  readonly path: string;
}

function describeIssues(issues: readonly ValidationIssue[]): string {
  return issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
}

/**
 * A payload that its definition refuses, or that Postgres cannot keep as jsonb. Thrown by `enqueue` before anything is sent,
 * so the caller's transaction stays usable. In a worker it is the error of a failed attempt.
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

/** A handler returned what its definition's `output` refuses, or what jsonb cannot keep. The attempt has failed. */
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

/** Something that is not a job definition was given where one is needed, or two handlers were given for one kind. */
export class UnknownKindError extends QueueError {
  override name = 'UnknownKindError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.UnknownKindError');
}

/** A handler took longer than its definition's `timeoutMs`. Its signal is aborted with this error, and the attempt has failed. */
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
 * This worker no longer holds the job: it was declared gone and another worker claimed the job, or the attempt was already
 * settled. `complete(tx)` throws it, so that the transaction with the handler's writes rolls back; the signal of a handler
 * whose job was lost is aborted with it.
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
 * Somebody has asked for the end of a running job (`queue.cancel`): the reason of its handler's signal. A handler that throws
 * from there on ends its job as cancelled; one that completes it all the same has completed it.
 */
export class JobCancelledError extends QueueError {
  override name = 'JobCancelledError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobCancelledError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    /** What `queue.cancel` was given. */
    readonly reason: string,
  ) {
    super(`Job ${jobId} ('${kind}') is to be cancelled: ${reason}`);
  }
}

/** Throw it in a handler to discard the job at once, whatever attempts are left. `cause` is kept in the job's errors. */
export class NonRetryableError extends QueueError {
  override name = 'NonRetryableError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.NonRetryableError');
}

/** The attempt before this one never ended: its worker died. The reason of a job that is discarded for it. */
export class WorkerLostError extends QueueError {
  override name = 'WorkerLostError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.WorkerLostError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    readonly maxAttempts: number,
  ) {
    super(
      `Job ${jobId} ('${kind}') was claimed ${maxAttempts} times (its maxAttempts), and the last worker that held it ` +
        'died or lost its connection before it could say how the attempt ended',
    );
  }
}

/** The queue's tables, or columns of them, are missing in the database: its migrations have not run. */
export class MissingMigrationError extends QueueError {
  override name = 'MissingMigrationError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.MissingMigrationError');
  constructor(what: string, options?: ErrorOptions) {
    super(
      `${what}. Run \`drizzle-kit generate && drizzle-kit migrate\` ` +
        "(your Drizzle schema must contain `export * from 'drizzle-queue/schema'`)",
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
