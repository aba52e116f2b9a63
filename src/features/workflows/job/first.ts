import type { Child, OutputOf } from './child.ts';
import type { SignalDefinition, SignalValue } from './define-signal.ts';

/**
 * What `step.first` may wait for: a signal, a child that `step.enqueue` has returned, or a time: a number of
 * milliseconds from its first try, or a date, by the database's clock and at most 365 days ahead.
 */
export type FirstSource = SignalDefinition | Child | { readonly delayMs: number } | { readonly until: Date };

/** What `step.first` waits for, by keys that say in the handler which of them came. */
export type FirstSources = Readonly<Record<string, FirstSource>>;

/** Options of `step.first`. */
export interface FirstOptions {
  /** Whether the children among the others are cancelled, as by `queue.cancel`. @default false: they go on */
  readonly cancelRest?: boolean | undefined;
}

/** Which came first, by its key: the value of a signal, the output of a child, or nothing for a time. */
export type FirstOf<TSources extends FirstSources> = {
  [TKey in keyof TSources & string]: {
    readonly key: TKey;
    readonly value: FirstValue<TSources[TKey]>;
  };
}[keyof TSources & string];

/** What one of them brings. */
export type FirstValue<TSource extends FirstSource> =
  TSource extends Child<infer TJob>
    ? OutputOf<TJob>
    : TSource extends SignalDefinition
      ? SignalValue<TSource>
      : undefined;
