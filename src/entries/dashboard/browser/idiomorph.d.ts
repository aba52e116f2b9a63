declare module 'idiomorph/dist/idiomorph.esm.js' {
  interface MorphOptions {
    morphStyle?: 'innerHTML' | 'outerHTML';
    ignoreActiveValue?: boolean;
    restoreFocus?: boolean;
    callbacks?: {
      beforeAttributeUpdated?(name: string, node: Element, type: 'update' | 'remove'): boolean;
      beforeNodeMorphed?(old: Node, next: Node): boolean;
      beforeNodeRemoved?(old: Node): boolean;
      beforeNodeAdded?(node: Node): boolean;
    };
  }
  export const Idiomorph: { morph(old: Element, next: Element, options?: MorphOptions): unknown };
}
