import { jobsInWords } from '../../../core/job/jobs-in-words.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import { Rounds } from '../../../core/worker/base/rounds.ts';
import type { HandlerHoldsOptions } from '../../../core/worker/claim/claim-groups.ts';
import type { EndedJob, HandlerHolds } from '../../../core/worker/settle/handler-holds.ts';
import { endHandlerHolds } from '../queries/end-handler-holds.ts';
import type { GroupTables } from '../sql/limit-tables.ts';

/**
 * Where jobs are in groups: the slots of jobs that their handlers have ended by `complete(tx)`, which are
 * free only when the handlers have ended, too.
 */
export class GroupHandlerHolds implements HandlerHolds {
  readonly #options: HandlerHoldsOptions & { readonly tables: GroupTables };
  readonly #rounds = new Rounds((ended: readonly EndedJob[]) => this.#write(ended));

  constructor(options: HandlerHoldsOptions & { readonly tables: GroupTables }) {
    this.#options = options;
  }

  /** The handler of a job that it had ended has ended. Resolves when its slot is free. Never rejects. */
  async end(job: EndedJob): Promise<void> {
    await this.#rounds.add(job);
  }

  async #write(ended: readonly EndedJob[]): Promise<void> {
    const { db, tables, holder, events, retries, giveUp } = this.#options;
    if (holder.workerId === null) return;
    for (const delays = new Doubling(); !giveUp.aborted; ) {
      try {
        await endHandlerHolds(db, tables, holder, ended);
        return;
      } catch (error) {
        events.emit('error', {
          error,
          during: `freeing the slots of ${jobsInWords(ended.length)} of '${holder.queue}'`,
        });
        await retries.sleep(delays.next(), giveUp);
      }
    }
  }
}
