// Icons, drawn in a box of 20 units.

export const ICONS = {
  play: "M6.5 4v12l9-6z",
  pause: "M6.5 4.5v11M13.5 4.5v11",
  earlier: "M5 4.5v11M15 4.5v11L7.5 10z",
  later: "M15 4.5v11M5 4.5v11l7.5-5.5z",
  closer: "M10 4.5v11M4.5 10h11",
  farther: "M4.5 10h11",
  whole: "M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4",
  back: "M16 10H4.5M9 5l-5 5 5 5",
  talk: "M3.5 4.5h13v9h-7l-3.5 3v-3h-2.5z",
  reaction: "M11 3l-5.5 8h4l-.5 6 5.5-8h-4z",
  reflection: "M10 3.5a5 4.2 0 0 0-5 4.2c0 2.3 2 4.2 5 4.2s5-1.9 5-4.2a5 4.2 0 0 0-5-4.2zM6.5 14.2h.01M5 16.8h.01",
  thing: "M10 3l6 3.5v7L10 17l-6-3.5v-7zM4 6.5l6 3.5 6-3.5M10 10v7",
  theme: "M10 3.5a6.5 6.5 0 1 0 0 13zM10 3.5a6.5 6.5 0 0 1 0 13",
  link: "M8.5 11.5a3 3 0 0 0 4.2 0l2.8-2.8a3 3 0 0 0-4.2-4.2l-1 1M11.5 8.5a3 3 0 0 0-4.2 0l-2.8 2.8a3 3 0 0 0 4.2 4.2l1-1",
};
