import { type Child, Fragment, h } from '../html.ts';

interface CardProps {
  /** Its heading has this id with `-title`. */
  readonly id: string;
  readonly title: string;
  /** A further class, by which it looks. */
  readonly look?: string;
  readonly children?: Child;
}

/** A part of a page under a heading of its own. */
export function Card({ id, title, look, children }: CardProps) {
  return (
    <section class={look === undefined ? 'card' : `card ${look}`} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </section>
  );
}

/** A name and its value in a list of facts. */
export function Fact({ name, children }: { readonly name: string; readonly children?: Child }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
