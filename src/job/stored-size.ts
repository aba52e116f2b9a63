import { InvalidPayloadError } from '../errors.ts';
import { utf8Bytes } from './limits.ts';

/**
 * Holds a queue's `maxPayloadBytes`: a job is read, copied and written a few times in its life, with all that it carries.
 *
 * @param path what of the job the JSON is: empty for the payload itself
 * @throws InvalidPayloadError saying how large it is, and what to do
 */
export function checkStoredSize(kind: string, path: string, json: string, maxBytes: number): void {
  // No character takes more than three bytes for each of its UTF-16 units, so most texts need not be encoded to be measured.
  if (json.length * 3 <= maxBytes) return;
  const bytes = utf8Bytes(json);
  if (bytes <= maxBytes) return;
  const message =
    `${bytes} bytes of JSON are more than the ${maxBytes} that the queue's maxPayloadBytes allows; ` +
    'store it elsewhere and enqueue a reference to it, or raise the limit: createQueue({ maxPayloadBytes })';
  throw new InvalidPayloadError(kind, [{ message, path }]);
}
