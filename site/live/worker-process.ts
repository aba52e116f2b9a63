import type { FromWorker, ToWorker } from './job-worker.ts';
import { fill } from './show-rows.ts';

export interface WorkerProcessOptions {
  readonly name: string;
  /** Its connection to the database. */
  readonly port: MessagePort;
  /** The text of a module that exports the handler. */
  readonly handler: string;
  /** Where it is shown, with buttons that end it. */
  readonly item: HTMLLIElement;
  readonly onLog: (text: string) => void;
  /** Called once it has taken a handler, or refused it. */
  readonly onHandler: (error: string | undefined) => void;
  /** Called once it runs no more, whatever ended it. */
  readonly onEnd: () => void;
}

/** A worker's process, as its operator sees it: it can be told to stop, and killed. */
export class WorkerProcess {
  readonly #worker: Worker;
  readonly #options: WorkerProcessOptions;

  constructor(options: WorkerProcessOptions) {
    const { name, port, handler } = options;
    this.#options = options;
    this.#worker = new Worker(new URL('./job-worker.ts', import.meta.url), { type: 'module' });
    this.#worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => this.#take(data));
    this.#worker.addEventListener('error', ({ message }) => this.#options.onLog(`has failed: ${message}`));
    this.#show('starts');
    this.#send({ type: 'start', name, port, handler }, [port]);
  }

  replaceHandler(handler: string): void {
    this.#send({ type: 'handler', handler });
  }

  /** Ends it between two instructions, whatever it does. */
  kill(): void {
    this.#worker.terminate();
    this.#options.item.remove();
    this.#options.onEnd();
  }

  #take(message: FromWorker): void {
    if (message.type === 'log') this.#options.onLog(message.text);
    else if (message.type === 'handler') this.#options.onHandler(message.error);
    else if (message.type === 'started') this.#show('runs');
    else this.kill();
  }

  #show(state: 'starts' | 'runs' | 'stops'): void {
    const { item, name, onLog } = this.#options;
    const kill = button(item, `Kill ${name}`, () => {
      onLog('is killed');
      this.kill();
    });
    const stop = button(item, `Stop ${name}`, () => {
      this.#show('stops');
      this.#send({ type: 'stop' });
      item.querySelector('button')?.focus();
    });
    stop.disabled = state !== 'runs';
    item.replaceChildren(fill(item.ownerDocument.createElement('span'), `${name} ${state}`), kill, stop);
  }

  #send(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
  }
}

function button(near: HTMLElement, label: string, act: () => void): HTMLButtonElement {
  const made = near.ownerDocument.createElement('button');
  made.type = 'button';
  made.addEventListener('click', act);
  return fill(made, label);
}
