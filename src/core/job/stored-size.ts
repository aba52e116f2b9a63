import { InvalidPayloadError } from '../../errors.ts';
import { utf8Bytes } from './limits.ts';

/**
 * Enforces a queue's `maxPayloadBytes`: a job is read, copied and written several times in its life.
 *
 * @param path which part of the job the JSON is: empty for the payload itself
 * @throws InvalidPayloadError with the size, and what to do
 */
export function checkStoredSize(kind: string, path: string, json: string, maxBytes: number): void {
  // A UTF-16 unit takes at most three bytes, so most texts need not be encoded to be measured.
  if (json.length * 3 <= maxBytes) return;
  const bytes = utf8Bytes(json);
  if (bytes <= maxBytes) return;
  const message =
    `${bytes} bytes of JSON are more than the ${maxBytes} of createQueue({ maxPayloadBytes }); ` +
    'store it elsewhere and enqueue a reference, or raise that limit';
  throw new InvalidPayloadError(kind, [{ message, path }]);
}
