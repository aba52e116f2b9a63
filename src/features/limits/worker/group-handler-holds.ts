import { jobsInWords } from '../../../core/job/jobs-in-words.ts';
import { nextTurn } from '../../../core/runtime.ts';
import type { HandlerHoldsOptions } from '../../../core/worker/claim/claim-groups.ts';
import type { HandlerHolds } from '../../../core/worker/settle/handler-holds.ts';
import { type EndedByHandler, endHandlerHolds } from '../queries/end-handler-holds.ts';
import type { GroupTables } from '../sql/limit-tables.ts';

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/**
 * Where jobs are in groups: the slots of jobs that their handlers have ended by `complete(tx)`, which are
 * free only when the handlers have ended, too. What ends while a statement is under way goes into the next
 * one.
 */
export class GroupHandlerHolds implements HandlerHolds {
  readonly #options: HandlerHoldsOptions & { readonly tables: GroupTables };
  #ended: EndedByHandler[] = [];
  #next: Promise<void> | undefined;
  /** The statement that is under way. */
  #before: Promise<void> = Promise.resolve();

  constructor(options: HandlerHoldsOptions & { readonly tables: GroupTables }) {
    this.#options = options;
  }

  /** The handler of a job that it had ended has ended. Resolves when its slot is free. Never rejects. */
  async end(job: EndedByHandler): Promise<void> {
    this.#ended.push(job);
    this.#next ??= this.#endNext();
    await this.#next;
  }

  async #endNext(): Promise<void> {
    await Promise.all([nextTurn(), this.#before]);
    const ended = this.#ended;
    this.#ended = [];
    this.#next = undefined;
    this.#before = this.#write(ended);
    await this.#before;
  }

  async #write(ended: readonly EndedByHandler[]): Promise<void> {
    const { db, tables, holder, events, retries, giveUp } = this.#options;
    if (holder.workerId === null) return;
    for (let delayMs = FIRST_RETRY_MS; !giveUp.aborted; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        await endHandlerHolds(db, tables, holder, ended);
        return;
      } catch (error) {
        events.emit('error', {
          error,
          during: `freeing the slots of ${jobsInWords(ended.length)} of '${holder.queue}'`,
        });
        await retries.sleep(delayMs, giveUp);
      }
    }
  }
}
