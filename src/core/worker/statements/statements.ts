import type { SQLWrapper } from 'drizzle-orm';
import { isPoolEnded, lostWithPool, saysEnded } from '../../drivers/ended-pool.ts';
import { senderOf } from '../../drivers/sender.ts';
import type { Sender, SentStatement } from '../../drivers/sent-statement.ts';
import { type Database, type Runner, sqlStateOf } from '../../sql/executor.ts';
import { isLoss } from '../../sql/is-loss.ts';
import { Condition } from '../../time/condition.ts';
import { type Deadline, Deadlines } from '../../time/deadlines.ts';
import { resolvesWithin } from '../../time/resolves-within.ts';
import { NoAnswerError } from './no-answer-error.ts';
import type { OpeningConnection, OwnConnection } from './own-connection.ts';
import { Spare } from './spare.ts';

/** The parts of a worker that ask the database, as its health names them. */
export type WorkerPart =
  | 'start'
  | 'claims'
  | 'sweeps'
  | 'settlements'
  | 'heartbeat'
  | 'requests'
  | 'limits'
  | 'schedules'
  | 'listening'
  | 'upkeep';

/** The least deadline of a statement. None of a worker's waits for a lock that long on purpose. */
const LEAST_MS = 5_000;
/** The most, however slow the statements of its sort have been. */
const MOST_MS = 600_000;
/** A statement may take this many times as long as its sort lately took, while others were answered. */
const TIMES_SLOWEST = 4;
/** What one answer is worth to that memory: it fades over a few hundred. */
const FADING = 0.99;
/** And to that of a server which answered nothing at all: it fades over a few tens. */
const STALL_FADING = 0.9;
/** How long a statement waits for the spare connection before it tries the silent pool all the same. */
const SPARE_MS = 2_500;

export interface StatementsOptions {
  readonly db: Database;
  /** Opens a connection beside the pool; `undefined` where the driver cannot. */
  readonly open: (() => OpeningConnection) | undefined;
  /** Called once when the server refuses prepared statements. */
  readonly onRefused: (error: unknown) => void;
  /**
   * Called once when the app is known to have ended its pool.
   *
   * @param canSend resolves to whether statements still go out, on a connection of the worker's own
   * @param error what the driver said
   */
  readonly onPoolEnded: (canSend: Promise<boolean>, error: unknown) => void;
}

interface SendOptions {
  readonly prepared: boolean;
  readonly part: WorkerPart;
}

/** Runs the statements of one part of the worker. */
export interface WorkerRunner extends Runner {
  /** Whether it prepares what it runs, so that Postgres may keep a plan. @default false */
  readonly prepares?: boolean;
}

/**
 * Sends the statements of a worker. Each has a deadline, since a connection that a firewall, a load balancer
 * or a dead host has forgotten stays silent for up to a quarter of an hour. Past it the caller gets a
 * {@link NoAnswerError}, the connection is closed where the driver allows it, and the pool counts as silent:
 * until it is known to answer again, the worker uses a connection of its own.
 *
 * Four sorts go another way: those of the session, on the connection that listens; those in a transaction,
 * such as `complete(tx)`; what `RefusedClaims` tries and parks; and the removal of a worker that was stopped
 * while it registered.
 *
 * **What an answer that did not come means.** The server may have carried the statement out, may be at it
 * still, or may yet get it. So each of these statements can be repeated, or names what it changes by id and
 * fence; what a claim may have taken is looked for by `Holdings`.
 */
export class Statements {
  readonly deadlines = new Deadlines();
  readonly #db: Database;
  readonly #sender: Sender;
  readonly #spare: Spare;
  readonly #runners: PartRunner[] = [];
  /** Answers that were given up and may still come: each keeps a connection of the pool. */
  #owed = 0;
  #healing = false;
  readonly #over = new AbortController();
  /** When the pool last answered anything, by the monotonic clock. */
  #answeredMs = Number.NEGATIVE_INFINITY;
  #besideMs = Number.NEGATIVE_INFINITY;
  readonly #poolIsWell = new Condition();
  /** The app has ended its pool: nothing goes out through it any more. */
  #poolHasEnded = false;
  readonly #onPoolEnded: StatementsOptions['onPoolEnded'];

  constructor({ db, open, onRefused, onPoolEnded }: StatementsOptions) {
    this.#db = db;
    this.#sender = senderOf(db, onRefused);
    this.#spare = new Spare(open);
    this.#onPoolEnded = onPoolEnded;
  }

  /** A runner for statements of one sort, with a memory of its own of how long they take. */
  of(
    part: WorkerPart,
    { prepared = false, leastMs = LEAST_MS }: { readonly prepared?: boolean; readonly leastMs?: number } = {},
  ): WorkerRunner {
    const runner = new PartRunner(this, part, prepared, leastMs);
    this.#runners.push(runner);
    return runner;
  }

  /** A connection of the worker's own, which may serve in the pool's place. */
  offer(connection: OwnConnection): void {
    this.#spare.offer(connection);
  }

  /** By part, how long ago its first statement was sent that has no answer yet; only parts that wait. */
  get unansweredMs(): Partial<Record<WorkerPart, number>> {
    const nowMs = performance.now();
    const answeredMs = new Map<WorkerPart, number>();
    for (const { part, lastMs } of this.#runners) {
      answeredMs.set(part, Math.max(answeredMs.get(part) ?? lastMs, lastMs));
    }
    const unanswered: Partial<Record<WorkerPart, number>> = {};
    for (const { part, sinceMs, isOpen } of this.#runners) {
      if (sinceMs === undefined) continue;
      // What was lost and is not asked again, another statement of the part has stood in for.
      if (!isOpen && sinceMs < (answeredMs.get(part) ?? sinceMs)) continue;
      unanswered[part] = Math.max(unanswered[part] ?? 0, Math.round(nowMs - sinceMs));
    }
    return unanswered;
  }

  /** Nothing of it is left, except answers that the driver still waits for. */
  end(): void {
    this.#over.abort();
    this.deadlines.end();
    this.#spare.end();
  }

  get prepares(): boolean {
    return this.#sender.prepares;
  }

  /** When the last statement was answered, of whatever connection. */
  get answeredMs(): number {
    return Math.max(this.#answeredMs, this.#besideMs);
  }

  /** One was answered on the connection that listens: the server is not silent. */
  noteAnswerBeside(): void {
    this.#besideMs = performance.now();
  }

  /** Sends a statement by whatever answers: the pool as a rule. */
  send(query: SQLWrapper, options: SendOptions): SentStatement {
    if (!this.#isSilent || !this.#spare.isPossible) return this.#sendByPool(query, options);
    const { prepared } = options;
    const own = this.#spare.connection;
    return own === undefined ? this.#sendLater(query, prepared) : this.#sendOn(own, query);
  }

  /**
   * What an ended pool refuses was never sent, so it can go out on another connection; not at a start, which
   * fails with the driver's error.
   */
  #sendByPool(query: SQLWrapper, { prepared, part }: SendOptions): SentStatement {
    const sent = this.#sender.send(query, prepared);
    if (part === 'start') return sent;
    let later: SentStatement | undefined;
    const answer = Promise.resolve(sent.answer).catch((error: unknown) => {
      if (!isPoolEnded(error)) {
        if (!isLoss(error) || !(this.#poolHasEnded || saysEnded(this.#db))) throw error;
        const lost = lostWithPool();
        this.notePoolEnded(lost);
        throw lost;
      }
      this.notePoolEnded(error);
      if (!this.#spare.isPossible || this.#over.signal.aborted) throw error;
      later = this.#sendLater(query, prepared);
      return later.answer;
    });
    return { answer, abandon: (reason) => (later ?? sent).abandon(reason) };
  }

  /** The app has ended its pool. What is sent from now on needs a connection of the worker's own. */
  notePoolEnded(error: unknown): void {
    if (this.#poolHasEnded || this.#over.signal.aborted) return;
    this.#poolHasEnded = true;
    this.#spare.want();
    this.#onPoolEnded(this.#hasSpareSoon(), error);
  }

  async #hasSpareSoon(): Promise<boolean> {
    if (!this.#spare.isPossible) return false;
    const over = new AbortController();
    await resolvesWithin(this.#spare.ready(over.signal), SPARE_MS);
    over.abort();
    return this.#spare.connection !== undefined;
  }

  #sendOn(own: OwnConnection, query: SQLWrapper): SentStatement {
    const answer = Promise.resolve(own.runner.execute(query)).catch((error: unknown) => {
      // Without the pool it is the last connection, which the end of the worker closes under what is sent.
      throw this.#poolHasEnded && isLoss(error) ? lostWithPool() : error;
    });
    return {
      answer,
      abandon: (reason) => {
        own.abandon(reason);
        return true;
      },
    };
  }

  /** @returns when the answer before this one came */
  noteAnswer(): number {
    const before = this.#answeredMs;
    this.#answeredMs = performance.now();
    return before;
  }

  /** A statement has passed its deadline: the pool counts as silent until what it owes is settled. */
  noteNoAnswer(late: Promise<void> | undefined): void {
    if (late !== undefined) {
      this.#owed++;
      void late.then(() => {
        this.#owed--;
        this.#noteWell();
      });
    }
    if (!this.#healing) {
      this.#healing = true;
      void this.#sender.heal(this.#over.signal).then(() => {
        this.#healing = false;
        this.#noteWell();
      });
    }
    if (this.#isSilent) this.#spare.want();
  }

  get #isSilent(): boolean {
    return this.#poolHasEnded || this.#owed > 0 || this.#healing;
  }

  #noteWell(): void {
    if (this.#isSilent) return;
    this.#spare.rest();
    this.#poolIsWell.signal();
    this.#poolIsWell.clear();
  }

  /** Waits for the spare connection, or for the pool to be well, but not for long. */
  #sendLater(query: SQLWrapper, prepared: boolean): SentStatement {
    const over = new AbortController();
    let statement: SentStatement | undefined;
    let abandoned: Error | undefined;
    const answer = (async () => {
      await Promise.race([
        this.#spare.ready(over.signal),
        this.#poolIsWell.wait(SPARE_MS, over.signal),
      ]).finally(() => over.abort());
      if (abandoned !== undefined) throw abandoned;
      const own = this.#isSilent ? this.#spare.connection : undefined;
      statement = own === undefined ? this.#sender.send(query, prepared) : this.#sendOn(own, query);
      return await statement.answer;
    })();
    return {
      answer,
      abandon: (reason) => {
        abandoned = reason;
        over.abort();
        return statement?.abandon(reason) ?? false;
      },
    };
  }
}

class PartRunner implements WorkerRunner {
  readonly #statements: Statements;
  readonly #prepared: boolean;
  readonly #leastMs: number;
  /** When each of its statements without an answer was sent. */
  readonly #open = new Map<Deadline, number>();
  /** When the first was sent whose answer did not come, while none came after it. */
  #silentSinceMs: number | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;
  /**
   * How long the slowest took while other statements were answered: a property of the sort. A stall of the
   * whole server is not, and four times its length would hide a statement that is lost soon afterwards.
   */
  #slowestMs = 0;
  /** How long the slowest took, whatever the reason. */
  #longestMs = 0;
  /** Grows while other statements are answered, and this sort is not: it may be slow, and no silence. */
  #patience = 1;

  constructor(
    statements: Statements,
    readonly part: WorkerPart,
    prepared: boolean,
    leastMs: number,
  ) {
    this.#statements = statements;
    this.#prepared = prepared;
    this.#leastMs = leastMs;
  }

  get prepares(): boolean {
    return this.#prepared && this.#statements.prepares;
  }

  /** When it had its last answer, by the monotonic clock. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** Whether a statement waits for its answer now. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Since when it waits for an answer. */
  get sinceMs(): number | undefined {
    if (this.#silentSinceMs !== undefined) return this.#silentSinceMs;
    const [first] = this.#open.values();
    return first;
  }

  execute(query: SQLWrapper): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const startMs = performance.now();
      const statement = this.#statements.send(query, { prepared: this.#prepared, part: this.part });
      // Once: a query of Drizzle's is sent anew by each look at it. A value that is not a database may answer
      // with anything.
      const answer = Promise.resolve(statement.answer);
      const { deadlines } = this.#statements;
      let isGivenUp = false;
      const deadline = deadlines.add(this.#deadlineMs, () => {
        isGivenUp = true;
        this.#open.delete(deadline);
        reject(this.#giveUp(statement, answer, startMs));
      });
      this.#open.set(deadline, startMs);
      answer.then(
        (result) => {
          const beforeMs = this.#statements.noteAnswer();
          if (isGivenUp) return;
          this.#close(deadline);
          this.#note(startMs, beforeMs);
          resolve(result);
        },
        (error: unknown) => {
          const isAnswer = sqlStateOf(error) !== undefined;
          const beforeMs = isAnswer ? this.#statements.noteAnswer() : undefined;
          if (isGivenUp) return;
          this.#close(deadline);
          if (beforeMs === undefined) this.#silentSinceMs ??= startMs;
          else this.#note(startMs, beforeMs);
          reject(error);
        },
      );
    });
  }

  get #deadlineMs(): number {
    const usualMs = Math.max(this.#slowestMs * TIMES_SLOWEST, this.#longestMs, this.#leastMs);
    return Math.min(usualMs * this.#patience, MOST_MS);
  }

  #close(deadline: Deadline): void {
    this.#open.delete(deadline);
    this.#statements.deadlines.remove(deadline);
  }

  /** @param beforeMs when the previous answer to any statement of the worker came */
  #note(startMs: number, beforeMs: number): void {
    this.#lastMs = performance.now();
    this.#slowestMs = Math.max(beforeMs - startMs, this.#slowestMs * FADING);
    this.#longestMs = Math.max(this.#lastMs - startMs, this.#longestMs * STALL_FADING);
    this.#patience = 1;
    this.#silentSinceMs = undefined;
  }

  #giveUp(statement: SentStatement, answer: Promise<unknown>, startMs: number): NoAnswerError {
    this.#silentSinceMs ??= startMs;
    if (this.#statements.answeredMs > startMs) this.#patience *= 2;
    const waitedMs = performance.now() - startMs;
    const mayComeLate = statement.abandon(new NoAnswerError(this.part, waitedMs));
    const settled = () => undefined;
    const late = mayComeLate ? answer.then(settled, settled) : undefined;
    this.#statements.noteNoAnswer(late);
    return new NoAnswerError(this.part, waitedMs, late);
  }
}
