import dagre from "@dagrejs/dagre";
export default dagre;
