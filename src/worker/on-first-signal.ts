/**
 * Calls `stop` on the first SIGINT or SIGTERM; the second does what signals do. Answers a function that takes the
 * listeners off.
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
