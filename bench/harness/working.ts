import type { Memory } from '../child/commands.ts';
import type { Handled } from '../child/counter.ts';
import { Child } from './child.ts';
import type { Site } from './site.ts';

export interface WorkingOptions {
  /** @default 1 */
  readonly processes?: number;
  /** Note the time of every so-manieth job. */
  readonly sampleEvery: number;
  /** Note when each job began. @default false */
  readonly noteStarts?: boolean;
}

/** A system at work on a site, in one process or several. */
export class Working {
  private constructor(
    private readonly name: string,
    readonly children: readonly Child[],
    /** Processor time that the processes had spent before they began to work, each. */
    private readonly startCpuMs: readonly number[],
    /** What memory they took before. */
    readonly startMemory: readonly Memory[],
  ) {}

  static async start(
    { system, url }: Pick<Site, 'system' | 'url'>,
    { processes = 1, sampleEvery, noteStarts = false }: WorkingOptions,
  ): Promise<Working> {
    const children = await Promise.all(Array.from({ length: processes }, () => Child.start()));
    const { program, options, name } = system;
    // In the processes at the same time, so that none has done all the work before the next begins.
    await Promise.all(children.map((child) => child.call('load', program)));
    const startCpuMs = await Promise.all(children.map(async (child) => (await child.call('handled')).cpuMs));
    const startMemory = await Promise.all(children.map((child) => child.call('memory')));
    const request = { program, url, options, sampleEvery, noteStarts };
    await Promise.all(children.map((child) => child.call('work', request)));
    return new Working(name, children, startCpuMs, startMemory);
  }

  /** Waits until so many jobs are done in all, or for so long; answers whether they are. */
  async untilHandled(jobs: number, limitMs: number): Promise<boolean> {
    const [only] = this.children;
    if (this.children.length === 1 && only !== undefined)
      return await only.call('untilHandled', jobs, limitMs);
    for (const deadline = performance.now() + limitMs; performance.now() < deadline; ) {
      if ((await this.count()) >= jobs) return true;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return false;
  }

  async count(): Promise<number> {
    const counts = await Promise.all(this.children.map((child) => child.call('count')));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** What each process has done so far. */
  async handled(): Promise<Handled[]> {
    const handled = await Promise.all(this.children.map((child) => child.call('handled')));
    return handled.map((each, index) => ({ ...each, cpuMs: each.cpuMs - (this.startCpuMs[index] ?? 0) }));
  }

  async end(): Promise<void> {
    await Promise.all(this.children.map((child) => child.end()));
  }

  /** @throws Error unless each of the jobs from 0 on was done, and none twice */
  checkOnce(handled: readonly Handled[], jobs: number): void {
    const counts = new Uint8Array(jobs);
    for (const { seen } of handled) {
      for (let n = 0; n < Math.min(seen.length, jobs); n++) counts[n] = (counts[n] ?? 0) + (seen[n] ?? 0);
    }
    const missing = counts.filter((count) => count === 0).length;
    const twice =
      counts.filter((count) => count > 1).length + handled.reduce((sum, { repeated }) => sum + repeated, 0);
    if (missing > 0 || twice > 0)
      throw new Error(`${this.name}: ${missing} of ${jobs} jobs were not done, ${twice} twice`);
  }
}
