/** Stands for a service that makes text of pictures: some are illegible, and at times it is busy. */
import { NonRetryableError } from 'drizzle-queue';

const WORDS = ['a', 'page', 'of', 'words', 'that', 'can', 'be', 'counted'];

/** The scan of a page, as it is cut out of a document. */
export function scanOf(page: number): string {
  return page % 97 === 96 ? 'a coffee stain' : `page ${page}`;
}

/** @throws NonRetryableError when there is nothing to read; Error when it is busy */
export function recognise(scan: string, attempt: number): string {
  const [, digits] = /^page (\d+)$/.exec(scan) ?? [];
  if (digits === undefined) throw new NonRetryableError(`Illegible: ${scan}`);
  const page = Number(digits);
  if (page % 50 === 7 && attempt === 1) throw new Error('The scanner is busy');
  return Array.from({ length: 100 + (page % 11) }, (_, at) => WORDS[at % WORDS.length]).join(' ');
}
