/** Words that hide who acts, or that no reader would say. */
export const HABITS = /\b(?:whoever|whomever|nobody|somebody|(?:is|are) no \w+ of|is none of)\b/i;

export const MOST_WORDS = 35;

/** Figures are no words. */
export function wordsIn(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[a-z]/i.test(word)).length;
}

/** The sentences of a text, of which a row of a table is none. */
export function sentencesOf(prose: string): string[] {
  return prose
    .split(/\n\s*\n|\n(?=\s*[-*|#>@\d])/)
    .filter((paragraph) => !/^\s*\|/.test(paragraph))
    .flatMap((paragraph) => paragraph.replaceAll('\n', ' ').split(/(?<=[.!?:])\s+/));
}
