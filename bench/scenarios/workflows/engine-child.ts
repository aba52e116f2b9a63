import type { Memory } from '../../child/commands.ts';
import type { EngineRequest } from '../../child/workflows.ts';
import { Child } from '../../harness/child.ts';
import type { ActRequest, Acts } from './act.ts';

/** A process of its own with an engine of workflows. */
export class EngineChild {
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  static async open(request: EngineRequest): Promise<EngineChild> {
    const child = new EngineChild(await Child.start());
    await child.do('open', request);
    return child;
  }

  async do<K extends keyof Acts>(
    act: K,
    ...[request]: Parameters<Acts[K]>
  ): Promise<Awaited<ReturnType<Acts[K]>>> {
    // Name and request belong together, and so do request and answer.
    const answer = await this.#child.call('measure', 'workflows', { act, request } as ActRequest);
    return answer as Awaited<ReturnType<Acts[K]>>;
  }

  /** Processor time that the process has taken, in milliseconds. */
  async cpuMs(): Promise<number> {
    return (await this.#child.call('handled')).cpuMs;
  }

  async memory(): Promise<Memory> {
    return await this.#child.call('memory');
  }

  async end(): Promise<void> {
    await this.do('close');
    await this.#child.end();
  }
}
