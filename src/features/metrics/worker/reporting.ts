import type { Runner } from '../../../core/sql/executor.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import type { EndedAttempt } from '../../../core/worker/run/ended-attempt.ts';
import { type MetricsRow, reportMetrics } from '../queries/report-metrics.ts';
import type { KnownMetrics } from '../sql/metrics-tables.ts';
import { Tally } from './tally.ts';

export interface ReportingOptions {
  readonly db: Runner;
  readonly known: KnownMetrics;
  readonly workerId: number;
  readonly events: WorkerEmitter;
}

const REPORT_EVERY_MS = 60_000;
/** Reports that could not be written are kept so long; then the oldest are given up. */
const MAX_UNSENT = 60;

/**
 * Counts in memory how attempts end, and writes it once a minute by one statement. What a process has not
 * written dies with it: at most a minute.
 */
export class Reporting implements BackgroundPart {
  readonly #options: ReportingOptions;
  #tallies = new Map<string, Map<string, Tally>>();
  #unsent: (readonly MetricsRow[])[] = [];
  #lastReport = 0;
  /** One statement at a time. */
  #writing: Promise<void> = Promise.resolve();

  constructor(options: ReportingOptions) {
    this.#options = options;
  }

  note(ended: EndedAttempt): void {
    const ofQueue = this.#tallies.get(ended.queue) ?? new Map<string, Tally>();
    this.#tallies.set(ended.queue, ofQueue);
    const tally = ofQueue.get(ended.kind) ?? new Tally();
    ofQueue.set(ended.kind, tally);
    tally.add(ended);
  }

  async run(signal: AbortSignal): Promise<void> {
    // Workers that start together do not report together.
    await sleep(Math.random() * REPORT_EVERY_MS, signal);
    while (!signal.aborted) {
      await this.write();
      await sleep(REPORT_EVERY_MS, signal);
    }
    await this.#writing;
  }

  /** Writes what it has counted. Never rejects: what could not be written is written with the next. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { db, known, workerId, events } = this.#options;
    this.#close();
    const sent = this.#unsent;
    if (sent.length === 0) return;
    try {
      await reportMetrics(db, known, workerId, sent.flat());
      this.#unsent = [];
    } catch (error) {
      this.#unsent = sent.slice(-MAX_UNSENT);
      events.emit('error', { error, during: 'reporting metrics' });
    }
  }

  /** A report that was sent is never changed: its answer may have been lost. */
  #close(): void {
    if (this.#tallies.size === 0) return;
    const report = Math.max(Date.now(), this.#lastReport + 1);
    this.#lastReport = report;
    const rows = [...this.#tallies].flatMap(([queue, kinds]) =>
      [...kinds].map(([kind, tally]) => tally.toRow(report, queue, kind)),
    );
    this.#tallies = new Map();
    this.#unsent.push(rows);
  }
}
