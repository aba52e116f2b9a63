/** Names that read the same in every encoding, and under every `standard_conforming_strings`. */
export const PLAIN_NAME = /^[\w.:/-]*$/;
