import type { JSX as Intrinsic } from 'hono/jsx/jsx-runtime';
import { escapeToBuffer } from 'hono/utils/html';

/*
 * What JSX in the pages becomes: text. `hono/jsx` does the same and much more (contexts, streams, elements
 * of a browser's document), in ten times the bytes, all of which would be in the entry. Escaping is Hono's.
 */

/** What may stand in an element. */
export type Child = Markup | string | number | boolean | null | undefined | readonly Child[];

/** A text that is markup; every other text is escaped. */
export class Markup {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Properties = Readonly<Record<string, unknown>>;

/** Of HTML: these have no end tag. */
const VOID = new Set(['br', 'img', 'input', 'link', 'meta']);

/** Attributes that are there or not. Others, such as `aria-hidden`, have `true` as their text. */
const BOOLEAN = new Set([
  'checked',
  'defer',
  'disabled',
  'hidden',
  'multiple',
  'open',
  'required',
  'selected',
]);

/** Makes an element, as the compiler calls it for JSX. */
export function h(
  tag: string | ((properties: never) => Child),
  properties: Properties | null,
  ...children: readonly Child[]
): Markup {
  if (typeof tag === 'function') {
    const given = { ...properties, ...(children.length > 0 && { children }) };
    // The compiler has checked what the component takes.
    return new Markup(textOf(tag(given as never)));
  }
  const attributes = Object.entries(properties ?? {}).map(([name, value]) => attributeOf(name, value));
  const start = `<${tag}${attributes.join('')}`;
  return new Markup(VOID.has(tag) ? `${start}/>` : `${start}>${textOf(children)}</${tag}>`);
}

/** JSX without an element around it. */
export function Fragment({ children }: { readonly children?: Child }): Child {
  return children;
}

function attributeOf(name: string, value: unknown): string {
  // A compiler that is set for debugging adds where an element is made, as `__source`.
  if (value === undefined || value === null || name.startsWith('__')) return '';
  if (typeof value === 'boolean' && BOOLEAN.has(name)) return value ? ` ${name}=""` : '';
  return ` ${name}="${escaped(String(value))}"`;
}

function textOf(child: Child): string {
  if (child instanceof Markup || typeof child === 'number') return String(child);
  if (typeof child === 'string') return escaped(child);
  return Array.isArray(child) ? child.map((each: Child) => textOf(each)).join('') : '';
}

function escaped(text: string): string {
  const buffer: [string] = [''];
  escapeToBuffer(text, buffer);
  return buffer[0];
}

/** How the compiler checks JSX. */
export declare namespace h {
  namespace JSX {
    type Element = Markup;
    type ElementType = string | ((properties: never) => Child);
    interface ElementChildrenAttribute {
      children: Child;
    }
    interface IntrinsicElements extends Intrinsic.IntrinsicElements {}
  }
}
