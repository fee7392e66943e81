// The contract of the viewer's data: what Python hands over (viewer/packed.py, segmented.py and
// studied.py; docs/server-api.md says what it means), and what the page and its worker say to each
// other. Types only: nothing here is run, and no browser is given it.

export type Reading = "raw" | "cosine" | "centred";
export type Kind = Reading | "attention";
export type Special = "kept" | "left_out";
export type Unit = "token" | "word";
export type Across = "left_out" | "kept"; // pairs across windows

// -- from Python ---------------------------------------------------------------------------------

export interface Model {
  name: string;
  family: string;
  stack: string;
  /** With heads; where a hybrid has layers without, `numbers` says which these are, from 1. */
  layers: number;
  numbers: number[];
  heads: number;
  head_size: number;
  window: number | null;
  seam: string;
  causal?: boolean; // not said by a study
  parameters: number;
}

/** Lists of one entry a token. */
export interface Tokens {
  id: number[];
  piece: string[];
  word: string[];
  word_number: number[];
  word_type: number[];
  place: number[];
  window: number[];
  unknown: boolean[];
  before: string[];
  shown: string[];
  sentence: number[];
  special: boolean[];
  class: number[];
  /** Of patches, from 1; 0 for what stands nowhere. */
  row?: number[];
  column?: number[];
  /** Of frames; null for what stands nowhere. */
  seconds?: (number | null)[];
}

/** What a picture or a sound is drawn from. */
export interface Place {
  kind: "image" | "sound" | "inputs";
  rows: number | null;
  columns: number | null;
  duration: number | null; // in seconds
  picture: string | null; // the picture as it was read, or a spectrogram: an address that holds it
  wave: [low: number[], high: number[]] | null;
}

export interface Focus {
  targets: string[];
  mass: number[][][];
  chance: number[];
}

/** One way of cutting a text. */
export interface Way {
  cuts: number[];
  price: number;
  scores: number[];
  heads: [layer: number, head: number, share: number][];
}

export interface Segmentation {
  made_from: string;
  granularities: number[];
  starts: number[];
  way: number[];
  ways: Way[];
  learned: number[];
  layout: (number | null)[];
  kernel: number[] | null;
}

/** A person's own classes of tokens: which of the labels each has; -1 for none. */
export interface Mark {
  name: string;
  labels: string[];
  of: number[];
}

/** What stands before the vectors; a server answers focus and segments when they are asked for. */
/** A measure that the worker makes of a text. */
export interface TextMeasure {
  name: keyof HeadMeasures;
  title: string;
  definition: string;
  shown: "percent" | "number" | "times";
}

export interface Header {
  format: "headscope reading";
  version: 1;
  headscope: string;
  model: Model;
  silenced: [layer: number, head: number][];
  windows: number;
  scales: number[][];
  measures: TextMeasure[];
  classes: string[];
  tokens: Tokens;
  marks: Mark[];
  after: string;
  place?: Place; // where it is no text that was read
  focus?: Focus | null;
  writes?: Writes[][] | null; // by layer and head, over the text; null where not told
  segments?: Segmentation;
}

export type Numbers = (number | null)[];

/** A quantity of a study, with a place for each head. */
export interface StudyMeasure {
  measure: string;
  name: string;
  definition: string;
  unit: string;
  by_chance: string;
  shown: "percent" | "number";
  told: boolean; // first of all on a head's card
  value: Numbers;
  low?: Numbers;
  high?: Numbers;
  chance?: Numbers;
  lift?: Numbers;
}

export interface Example {
  similarity: number | null;
  first: string;
  second: string;
  first_context: string;
  second_context: string;
  distance: number;
  source: string;
  line: number | null;
  text: number; // the kept text it is from
  first_position: number; // of its tokens there
  second_position: number;
  shows: string | null; // which label of the head
}

/** A window of the corpus that the study kept. */
export interface KeptText {
  number: number;
  source: string;
  line: number | null;
  text?: string; // only where a server can read it
}

/** What a head does, in words; strength from 0, what chance gives, to 1. */
export interface Label {
  name: string;
  strength: number;
  evidence: string;
}

export interface Card {
  /** The strongest first; never empty. */
  labels: Label[];
  anchors: [word: string, share: number][];
  examples: Example[];
}

/** Where heads stand on a plane, near those that do the same, with a place for each head. */
export interface HeadMap {
  x: number[];
  y: number[];
  shown: number; // the share of all differences that the plane shows
  closest: [layer: number, head: number][];
  agreement: Numbers; // with the closest
}

export interface Study {
  model: Model & { weights: string };
  corpus: { name: string; documents: number; tokens: number };
  reading: Reading;
  special: Special;
  rule: string;
  missing: string;
  measures: StudyMeasure[];
  map: HeadMap | null; // where the agreement of heads was added
  texts: KeptText[];
  shown: number | null; // the kept text that a saved page holds
  cards: Card[];
}

/** What a server was started with. */
export interface Started {
  models: string[];
  text: string;
  most_tokens: number;
  study: Study | null;
}

// -- between the page and its worker -------------------------------------------------------------

export type RuleName = "quantile" | "peak" | "sigma" | "nearest";
export interface Rule {
  name: RuleName;
  number: number;
}

/** Which pairs are high: by a rule, and within windows or also across them. */
export interface HighRule extends Rule {
  across: Across;
}

export type Range = [low: number, high: number];

/** 256 colours, and the values of the first and the last. */
export interface Colours {
  from: number;
  to: number;
  colours: Uint8Array;
}

/** Which matrix is asked for. */
export interface Asked {
  reading: string;
  kind: Kind;
  special: Special;
  unit: Unit;
  layer: number;
  head: number;
}

export interface Matrix {
  values: Float32Array; // size × size
  size: number;
  positions: Int32Array; // of the rows among the tokens
  range: Range; // of the colours
}

export interface Counts {
  count: number;
  sum: number;
  placed: number; // of them that have a distance
  distances: number;
  sameSentence: number;
  sameWord: number;
  byDistance: Float64Array;
}

export interface Pairs {
  windows: Int32Array | null; // of the rows, where pairs across windows take no part
  all: Counts;
  high: Counts;
  takingPart: Int32Array; // in how many high pairs each row is
  reach: Float64Array; // the similarity from which on a row calls a pair high
  pairs: [row: number, column: number, similarity: number][];
}

/** Communities of rows: states of least energy of a Potts model. */
export interface Communities {
  states: Int32Array; // of each row, 0 being the largest
  energy: number; // in units of all couplings
}

export interface Thumbnails {
  blocks: number;
  tokens: number;
  ranges: Float32Array;
  shared: Range;
}

export interface HeadMeasures {
  similarity: number;
  size: number;
  common_mode: number;
  range: number;
  same_sentence: number;
  repetition: number;
}

type Looked = Pick<Asked, "reading" | "kind" | "special" | "unit">;

/** Each question to the worker, and its answer. */
export interface Conversation {
  open: [{ reading: string }, { header: Header }];
  close: [{ reading: string }, object];
  thumbnails: [Looked & { kind: Reading; blocks: number }, Thumbnails];
  sheet: [{ reading: string; limits: number[]; colours: Uint8Array }, { picture: ImageBitmap }];
  matrix: [Asked & { kind: Reading }, Matrix];
  picture: [Asked & { rule: HighRule | null; scale: Colours }, { picture: ImageBitmap }];
  pairs: [Asked & { kind: Reading; rule: HighRule; most: number }, Pairs];
  agreement: [{ rule: HighRule; questions: (Asked & { kind: Reading })[] }, { both: number; either: number }];
  communities: [Asked & { kind: Reading; gamma: number }, Communities];
  attention: [Asked & { buffer: ArrayBuffer }, Matrix];
  paint: [{ values: Float32Array; size: number; scale: Colours }, { picture: ImageBitmap }];
  measure: [Asked & { kind: Reading; rule: HighRule }, HeadMeasures | null]; // null once it is forgotten
}
export type Ask = keyof Conversation;
export type Question<A extends Ask> = Conversation[A][0];
export type Answer<A extends Ask> = Conversation[A][1];

/** What the worker is told, without an answer. */
export interface Told {
  forget: object;
  part: { reading: string; part: string | ArrayBuffer };
}
export type Tell = keyof Told;

export type ToWorker =
  { [A in Ask]: Question<A> & { ask: A; id: number } }[Ask] | { [T in Tell]: Told[T] & { ask: T } }[Tell];
export type FromWorker =
  { id: number; answer: Answer<Ask>; error?: undefined } | { id: number; error: string };

// -- inside the page -----------------------------------------------------------------------------

/** What is read: a server is asked for it; a saved page holds one reading and takes no notice. */
export interface Request {
  model: string;
  text: string;
}

/** A reading that is open. */
export interface Opened {
  id: string;
  request: Request;
  header: Header;
  tokens: Tokens;
  model: Model;
  focus: Promise<Focus | null> | null; // once asked for
  segments: Promise<Segmentation> | null;
}

/** Where readings come from: a saved page, a notebook around it, or the server. */
export interface Source {
  canRead: boolean; // new texts
  session(): Promise<{ started: Started | null; study: Study | null; readable: boolean }>;
  parts(request: Request): AsyncGenerator<string | ArrayBuffer>;
  focus(reading: Opened): Promise<Focus | null>;
  segments(reading: Opened): Promise<Segmentation>;
  attention(reading: Opened, layer: number, head: number): Promise<ArrayBuffer>;
  writes(reading: Opened, layer: number, head: number, position: number | null): Promise<Writes | null>;
}

/** The words of the vocabulary that a head raises and lowers most, in standard deviations. */
export interface Writes {
  raised: [string, number][];
  lowered: [string, number][];
}

/** One measure of all heads, as the atlas orders and colours by it. */
export interface Measure {
  group: string;
  title: string;
  definition: string;
  unit?: string;
  byChance?: string;
  show: (value: number) => string;
  of: (place: number) => Estimate;
  hasChance: boolean;
  first?: boolean; // of all on a head's card
}

/** A number of one head with what is known of it. */
export interface Estimate {
  value?: number | null;
  low?: number | null;
  high?: number | null;
  chance?: number | null;
  lift?: number | null;
}

export interface Scale extends Colours {
  step: (value: number) => number;
}

/** One of the buttons of a choice: its value, its text, what it says when pointed at. */
export type Choice<V extends string> = readonly [value: V, text: string, title?: string];

export type Theme = "light" | "dark";

export type View = "atlas" | "head" | "text" | "segments" | "compare";

/** What is looked at, as an address says it. */
export interface Values {
  view: View;
  layer: string;
  head: string;
  reading: Reading;
  beside: string;
  rule: string;
  special: Special;
  across: Across;
  unit: Unit;
  /** Empty: labels where there is a study, else matrices. */
  cells: "" | "label" | "head" | "shared" | "measure";
  measure: string;
  by: "value" | "lift";
  order: "layer" | "high" | "low" | "map";
  label: string;
  least: string;
  most: string;
  granularity: string;
  communities: "" | "shown";
  token: string;
  other: string;
  model: string;
  text: string;
}

/** Changes of what is looked at; a number or nothing becomes text. */
export type Changes = {
  [N in keyof Values]?: Values[N] | (string extends Values[N] ? number | null : never);
};

/** Which of the values changed; null where anything may have. */
export type Changed = Set<keyof Values> | null;
