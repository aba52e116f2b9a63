// The theme without its web font: the pages load nothing that a reader's machine has.
import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

export default DefaultTheme;
