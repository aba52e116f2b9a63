/**
 * Calls `stop` on the first SIGINT or SIGTERM; a second signal ends the process as usual. Returns a function
 * that removes the listeners.
 */
export function onFirstSignal(stop: () => void): () => void {
  const onSignal = () => {
    forget();
    stop();
  };
  const forget = () => {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return forget;
}
