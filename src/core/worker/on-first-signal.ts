import { offEndSignal, onEndSignal } from '../runtime.ts';

const stops = new Set<() => void>();

/**
 * Calls `stop` on the first SIGINT or SIGTERM; a second signal ends the process as usual. Returns a function
 * that removes `stop`. All workers share one listener per signal: Node.js warns of the eleventh.
 */
export function onFirstSignal(stop: () => void): () => void {
  if (stops.size === 0) {
    onEndSignal(stopAll);
  }
  stops.add(stop);
  return () => forget(stop);
}

function stopAll(): void {
  for (const stop of [...stops]) {
    forget(stop);
    stop();
  }
}

function forget(stop: () => void): void {
  stops.delete(stop);
  if (stops.size > 0) return;
  offEndSignal(stopAll);
}
